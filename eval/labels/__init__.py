"""Read the user's own labels in any form, recognize their columns, and warn about doubtful labels."""
