"""``python -m megawrap.preprocess``."""

import signal
import sys

from megawrap.preprocess.cli import main

if __name__ == "__main__":
    # What a supervisor sends ends the run as cleanly as Ctrl-C does.
    # Both, because a shell starts background jobs with SIGINT ignored, and who starts us passes it on.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    sys.exit(main())
