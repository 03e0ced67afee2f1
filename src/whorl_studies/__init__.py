"""Studies beyond the paper, one folder each with its auditor.

Each is brought by entry points, as another package would bring it. Its library side uses public
names of whorl only, and `audit` imports NumPy and `whorl_audit` and nothing of whorl.
"""
