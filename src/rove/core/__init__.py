"""The paper's algorithms: Algorithms 1 and 2, and the randomised critic of Section 4.4."""
