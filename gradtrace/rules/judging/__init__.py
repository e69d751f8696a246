"""What several rules ask, each question answered once: which line is to blame, how to name it, is it meant, is it enough.

A rule says what is particular to it, and takes the rest from here. Nothing here knows a rule.
"""
