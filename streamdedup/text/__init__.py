"""From text to shingles: bytes, code points, tokens, stop words, shingle sets.

`tables` is the data, `kernel` the compiled loop over it, `shingler` the one door for callers.
"""
