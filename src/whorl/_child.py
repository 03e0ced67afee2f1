"""Child processes with a safe path.

The command defines them, because importing anything from here imports JAX.
"""

from whorl_cli._child import audit as audit
from whorl_cli._child import environment as environment
from whorl_cli._child import python_command as python_command
