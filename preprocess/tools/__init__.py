"""What is done with datasets that exist: look into them, check them, merge, split, and count what a run takes of them.

Memory does not grow with a dataset. What is written appears complete or not at all.
"""
