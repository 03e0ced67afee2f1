"""`python -m whorl` runs the command `whorl`.

Python has imported the library when it comes here, and a process with threads must not be divided
into two. So this one becomes `python -m whorl_cli`.
"""

import os
import sys

from whorl._child import environment, python_command

os.execve(sys.executable, python_command("-m", "whorl_cli", *sys.argv[1:]), environment())  # nosec B606 # this interpreter
