"""The process around the command line: ``megawrap`` and ``python -m megawrap``. It ends without a traceback when it is
interrupted while still importing, when the reader of its output is gone and when its output cannot be written."""

import errno
import os
import sys

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main() -> int:
    """Run the command of ``sys.argv`` and return its exit code (see ``megawrap.cli.app.main``)."""
    try:
        from megawrap.cli import main as command  # takes most of the time, so an interrupt lands here

        try:
            return command()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _forget_output()
        return 1
    except OSError as failed:
        if failed.errno not in _UNWRITABLE or failed.filename is not None:  # not the output: it has to be seen
            raise
        _forget_output()
        sys.stderr.write(f"megawrap: the output cannot be written: {failed.strerror}\n")
        return 1


def _forget_output() -> None:
    """What is still in the buffer goes nowhere, or Python would try, and complain, once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
