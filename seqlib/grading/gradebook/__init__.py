"""nbgrader's gradebook: one writer, and the marks that people gave in it."""
