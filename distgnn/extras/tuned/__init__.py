"""Recipe tuned: published settings of classic models, raced on validation over one cut."""
