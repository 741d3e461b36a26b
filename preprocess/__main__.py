"""``python -m megawrap.preprocess``."""

import signal
import sys

from megawrap.preprocess.cli import main

if __name__ == "__main__":
    # What a supervisor sends ends the run as cleanly as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
