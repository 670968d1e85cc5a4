"""What mixing costs, and what the advice of an X-ray is worth."""
