"""Bandwidth between ranks: measured by ``worker.py`` or read from rccl-tests, held against what the hardware can do.

``worker`` measures, alone on a node with torch; ``records`` holds the common record and reads the worker's result;
``parse`` reads what rccl-tests and nccl-tests print; ``expectations`` knows published marks; ``verdict`` judges. Of
megawrap this needs only ``megawrap.errors``.
"""
