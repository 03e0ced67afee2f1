"""The same work by other means.

Every peer has one function, `run(layers, inputs, targets, schedule, turns)`.

It takes host arrays whose first axis is the pairs, as `problem` makes them, and returns host
arrays: the four ledger terms (4, pairs, updates), and both final networks (pairs, depth, 3, 3).
Views are allowed; what stays on a device is not.
"""
