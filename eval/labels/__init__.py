"""Labels of one's own in any form, the names of their columns, and doubts about labels of any origin."""
