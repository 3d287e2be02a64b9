"""The paper: Algorithms 1 and 2, the randomised critic of Section 4.4, and what they share."""
