"""The paper's theory, checked: each module computes both sides of one group of claims.

Everything is numpy in float64, vectorised over draws of the problem; notebooks 01 to 05 tell the story.
"""
