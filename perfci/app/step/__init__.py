"""What CI says in a step's environment, for each forge."""
