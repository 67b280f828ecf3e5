"""Late submissions: what one costs, by which rule, and for whom there is an extension."""
