"""Colours and shapes that the pictures share.

Okabe and Ito's colours, which differ for every kind of colour vision and in grey.
"""

import numpy as np

RISE, FALL, WHOLE = "#D55E00", "#0072B2", "#666666"
SERIES = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#AA4499", "#56B4E9", "#1a1a1a")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
# The corners of a triangle on which a column of three lies: entries 1, 2, 3 go counter-clockwise
# from the lower left.
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
