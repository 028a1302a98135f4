"""tmp"""
def register(app): pass
