"""``python -m megawrap``."""

import sys

from megawrap.cli import main

sys.exit(main())
