"""Scripts that compute the long results of the book; committed result files."""
