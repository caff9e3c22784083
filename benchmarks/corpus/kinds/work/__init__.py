"""Work of many kinds, each made of about a hundred equal units."""
