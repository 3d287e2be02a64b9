"""Statistics and plots of results."""
