"""Extensions: what goes beyond pure gauge theory, each as a package of others would be."""
