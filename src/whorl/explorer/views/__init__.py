"""The views.

One file each, with one pure function `figure` from arrays and a moment to a Plotly figure.
"""
