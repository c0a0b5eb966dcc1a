"""Starts the command under torchrun."""

import sys

from steptime.measure.collectives.command import main

if __name__ == "__main__":
    sys.exit(main())
