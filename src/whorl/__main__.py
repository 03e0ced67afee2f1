"""`python -m whorl` is the command `whorl`."""

import sys

from whorl_cli import main

sys.exit(main())
