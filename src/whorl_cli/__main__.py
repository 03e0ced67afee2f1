"""`python -m whorl_cli` is the command `whorl`, without importing the library first."""

import sys

from whorl_cli import main

sys.exit(main())
