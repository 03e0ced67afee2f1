"""The interactive page: every claim of the paper, live, in a browser.

A `State` says what is seen, `gallery` makes figures of it with the library's public functions,
`server` shows them, and `Explorer` is the same in a notebook. Needs the extra `explore`.
"""

from whorl.explorer.notebook import Explorer as Explorer
from whorl.explorer.server import Server as Server
from whorl.explorer.state import State as State
