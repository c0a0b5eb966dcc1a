"""`python -m steptime COMMAND`: the program `steptime`."""

import sys

from steptime._cli import main

if __name__ == "__main__":
    sys.exit(main())
