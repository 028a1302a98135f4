"""Names that users bring: of vertices, of attributes in NetworkX graphs, and PyG's names of fields."""
