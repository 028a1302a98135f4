"""What was run beside the plain library on 1, 2 and 3 ranks: written by `tests/bench/peers/run.py --write`.

KINDS: (kind, how many gave equal numbers, how many were refused in one line); REFUSED: (script or layer, the line).
"""

KINDS = [
    ("layers of dgl, whole", 63, 13),
    ("layers of dgl, in place", 50, 9),
    ("layers of dgl, mask", 50, 9),
    ("layers of dgl, ids", 50, 9),
    ("layers of dgl, table", 54, 9),
    ("layers of dgl, no gradient", 63, 13),
    ("habits of scripts", 20, 0),
    ("global ids", 35, 5),
    ("tables of vertices", 31, 1),
    ("own random draws", 41, 11),
    ("changes in place", 32, 2),
    ("torch's modes", 25, 5),
    ("habits of Data", 52, 18),
    ("functions of PyG", 23, 22),
    ("layers of pyg, whole", 174, 58),
    ("layers of pyg, in place", 124, 25),
    ("layers of pyg, mask", 138, 27),
    ("layers of pyg, ids", 127, 22),
    ("layers of pyg, table", 112, 28),
    ("layers of pyg, no gradient", 153, 43),
    ("statistics of rows", 66, 1),
    ("norms on some rows", 41, 3),
    ("rows x rows", 7, 16),
    ("order of rows", 44, 17),
    ("losses", 43, 0),
    ("elementwise and columns", 26, 2),
    ("ordinary scripts", 13, 2),
]
REFUSED = [
    (
        "dgl: SAGEConv lstm",
        "update_all(…, _lstm_reducer) cannot run distributed, because the arcs of a vertex lie on several ranks: reduce with the built-in functions dgl.function.sum/mean/max/min, or use the layers of distgnn.nn",
    ),  # noqa: E501
    ("dgl: GatedGraphConv", "apply_edges on some edges cannot run distributed: leave edges out and mask the result"),  # noqa: E501
    (
        "dgl: AtomicConv",
        "update_all(…, reduce_func) cannot run distributed, because the arcs of a vertex lie on several ranks: reduce with the built-in functions dgl.function.sum/mean/max/min, or use the layers of distgnn.nn",
    ),  # noqa: E501
    (
        "dgl: TWIRLSConv",
        "graph.remove_self_loop cannot run distributed: a rank has its own arcs only: use update_all, apply_edges or distgnn.ops, or prepare the graph before it is cut (GraphData.from_dgl, distgnn partition)",
    ),  # noqa: E501
    (
        "dgl: GroupRevRes",
        "torch's storage over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "dgl: PNAConv",
        "update_all(…, reduce_func) cannot run distributed, because the arcs of a vertex lie on several ranks: reduce with the built-in functions dgl.function.sum/mean/max/min, or use the layers of distgnn.nn",
    ),  # noqa: E501
    (
        "dgl: DGNConv",
        "update_all(…, reduce_func) cannot run distributed, because the arcs of a vertex lie on several ranks: reduce with the built-in functions dgl.function.sum/mean/max/min, or use the layers of distgnn.nn",
    ),  # noqa: E501
    ("dgl: Sequential", "dgl.nn.Sequential takes a DGLGraph only: keep its layers in a ModuleList, and call each one"),  # noqa: E501
    (
        "dgl: own reducer",
        "update_all(…, <lambda>) cannot run distributed, because the arcs of a vertex lie on several ranks: reduce with the built-in functions dgl.function.sum/mean/max/min, or use the layers of distgnn.nn",
    ),  # noqa: E501
    (
        "dgl: SortPooling",
        "dgl.topk_nodes needs a whole graph, and a rank has its own arcs only: prepare it before it is cut (GraphData.from_dgl, distgnn partition)",
    ),  # noqa: E501
    (
        "dgl: SetTransformerEncoder",
        "torch's new over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "dgl: KNNGraph",
        "torch's add of rows with rows, [1, 61, 1] and [1, 1, 61], would make a row for each pair: take the pairs that are needed, rows[ids], or use dg.ops along arcs",
    ),  # noqa: E501
    (
        "dgl: RadiusGraph",
        "torch's cdist over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
    ),  # noqa: E501
    (
        "global ids: gather",
        "torch's gather over the rows of all ranks cannot run distributed: write x[ids] for rows by id; gather takes columns, dim=1",
    ),  # noqa: E501
    (
        "global ids: set by ids",
        "torch's __setitem__ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (torch.zeros_like)",
    ),  # noqa: E501
    (
        "global ids: index_put",
        "torch's index_put over the rows of all ranks cannot run distributed: write x[mask] = values",
    ),  # noqa: E501
    ("global ids: id too large", "index 1000000 is out of bounds for 61 rows of all ranks"),  # noqa: E501
    (
        "global ids: score of all pairs of some",
        "torch's matmul over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
    ),  # noqa: E501
    (
        "tables of vertices: featureless RGCN by relation",
        "FastRGCNConv (torch's add on edge_index) cannot run distributed: the arcs of a vertex lie on several ranks: aggregate with sum, mean, max, min, softmax, std or var over edge_index, or use the layers of distgnn.nn",
    ),  # noqa: E501
    (
        "own random draws: alpha dropout",
        "torch's alpha_dropout over the rows of all ranks cannot run distributed: draw with torch.rand_like, randn_like, randint_like, bernoulli or F.dropout",
    ),  # noqa: E501
    (
        "own random draws: feature dropout",
        "torch's feature_alpha_dropout over the rows of all ranks cannot run distributed: draw with torch.rand_like, randn_like, randint_like, bernoulli or F.dropout",
    ),  # noqa: E501
    (
        "own random draws: multinomial",
        "torch's multinomial over the rows of all ranks cannot run distributed: draw with torch.rand_like, randn_like, randint_like, bernoulli or F.dropout",
    ),  # noqa: E501
    (
        "own random draws: poisson",
        "torch's poisson over the rows of all ranks cannot run distributed: draw with torch.rand_like, randn_like, randint_like, bernoulli or F.dropout",
    ),  # noqa: E501
    (
        "own random draws: distribution",
        "torch's _is_all_true over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "own random draws: categorical",
        "torch's _is_all_true over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "own random draws: nn.AlphaDropout",
        "torch's alpha_dropout over the rows of all ranks cannot run distributed: draw with torch.rand_like, randn_like, randint_like, bernoulli or F.dropout",
    ),  # noqa: E501
    (
        "own random draws: dropout of SuperGATConv",
        "PyG's is_undirected cannot run on a graph that is cut: write data.is_undirected()",
    ),  # noqa: E501
    (
        "own random draws: dropout of GPSConv",
        "torch's einsum over the rows of all ranks cannot run distributed: write every letter and the result: 'nd,de->ne'",
    ),  # noqa: E501
    (
        "own random draws: dropout_node",
        "PyG's dropout_node cannot run on a graph that is cut: drop arcs with dropout_edge, or rows with a mask",
    ),  # noqa: E501
    (
        "own random draws: negative_sampling",
        "PyG's negative_sampling cannot run on a graph that is cut: take pairs from dg.negative_edges(graph, count)",
    ),  # noqa: E501
    (
        "changes in place: index_add_",
        "torch's index_add_ over the rows of all ranks cannot run distributed: into rows of vertices: along arcs give graph.edge_index, by id write x[ids] = values; into groups give an ordinary tensor of one row for each group",
    ),  # noqa: E501
    (
        "changes in place: one-hot by scatter_",
        "torch's scatter_ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (y.new_zeros(N, C))",
    ),  # noqa: E501
    (
        "torch's modes: hooks on modules",
        "GCNConv (torch's view_as on edge_index) cannot run distributed: the arcs of a vertex lie on several ranks: aggregate with sum, mean, max, min, softmax, std or var over edge_index, or use the layers of distgnn.nn",
    ),  # noqa: E501
    (
        "torch's modes: checkpoint, use_reentrant=True",
        "a torch.autograd.Function of one's own, checkpoint(use_reentrant=True) or a backward hook of a module has made these rows, and their gradient would be lost: give the function x.to_local() and take graph.rows_of(result), or write use_reentrant=False",
    ),  # noqa: E501
    (
        "torch's modes: second derivatives",
        "torch's autograd.grad over the rows of all ranks cannot run distributed: a second derivative (create_graph=True) of rows is not there",
    ),  # noqa: E501
    (
        "torch's modes: torch.func.grad",
        "the transforms of torch.func (grad, vmap, jacrev) cannot pass an exchange of rows: take gradients with backward() or torch.autograd.grad; functional_call needs no transform and works",
    ),  # noqa: E501
    (
        "torch's modes: torch.func.vmap",
        "torch's sin over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "habits of Data: subgraph",
        "graph.subgraph cannot run distributed: a rank has its own arcs only: use update_all, apply_edges or distgnn.ops, or prepare the graph before it is cut (GraphData.from_dgl, distgnn partition)",
    ),  # noqa: E501
    (
        "habits of Data: coalesce",
        "arcs that are there twice cannot be merged in a graph that is cut: transform the graph before it is cut: dg.GraphData.from_pyg(transform(data)), then partition it",
    ),  # noqa: E501
    (
        "habits of Data: T.ToUndirected",
        "T.ToUndirected cannot run on a graph that is cut: cut it with direction='both' (distgnn partition --direction both)",
    ),  # noqa: E501
    (
        "habits of Data: T.AddSelfLoops",
        "T.AddSelfLoops cannot run on a graph that is cut: leave it out: layers add their own; or cut it with self_loops='add'",
    ),  # noqa: E501
    (
        "habits of Data: T.GCNNorm",
        "T.GCNNorm cannot run on a graph that is cut: leave it out: GCNConv normalises by itself",
    ),  # noqa: E501
    (
        "habits of Data: T.LocalDegreeProfile",
        "T.LocalDegreeProfile cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
    ),  # noqa: E501
    (
        "habits of Data: T.OneHotDegree",
        "T.OneHotDegree cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
    ),  # noqa: E501
    (
        "habits of Data: T.AddLaplacianEigenvectorPE",
        "T.AddLaplacianEigenvectorPE cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
    ),  # noqa: E501
    (
        "habits of Data: T.AddRandomWalkPE",
        "T.AddRandomWalkPE cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
    ),  # noqa: E501
    (
        "habits of Data: T.SIGN",
        "T.SIGN cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
    ),  # noqa: E501
    (
        "habits of Data: T.LargestConnectedComponents",
        "T.LargestConnectedComponents cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
    ),  # noqa: E501
    (
        "habits of Data: T.SVDFeatureReduction",
        "T.SVDFeatureReduction cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
    ),  # noqa: E501
    (
        "habits of Data: T.RemoveIsolatedNodes",
        "T.RemoveIsolatedNodes cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
    ),  # noqa: E501
    (
        "habits of Data: T.Pad",
        "T.Pad cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
    ),  # noqa: E501
    (
        "habits of Data: T.RootedEgoNets",
        "T.RootedEgoNets cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
    ),  # noqa: E501
    (
        "habits of Data: T.VirtualNode",
        "T.VirtualNode cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
    ),  # noqa: E501
    (
        "habits of Data: T.LineGraph",
        "T.LineGraph cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
    ),  # noqa: E501
    (
        "habits of Data: T.FeaturePropagation",
        "T.FeaturePropagation cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
    ),  # noqa: E501
    (
        "functions of PyG: to_undirected",
        "PyG's to_undirected cannot run on a graph that is cut: cut the graph with direction='both' (distgnn partition --direction both)",
    ),  # noqa: E501
    (
        "functions of PyG: coalesce",
        "PyG's coalesce cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
    ),  # noqa: E501
    (
        "functions of PyG: is_undirected",
        "PyG's is_undirected cannot run on a graph that is cut: write data.is_undirected()",
    ),  # noqa: E501
    (
        "functions of PyG: contains_isolated_nodes",
        "PyG's contains_isolated_nodes cannot run on a graph that is cut: write data.has_isolated_nodes()",
    ),  # noqa: E501
    (
        "functions of PyG: homophily insensitive",
        "torch_geometric.utils.homophily(method='edge_insensitive') cannot run on the edge_index of a DistGraph: compute it on the whole graph before partitioning, in one process",
    ),  # noqa: E501
    (
        "functions of PyG: assortativity",
        "PyG's assortativity cannot run on a graph that is cut: take it before the graph is cut, on the Data that dg.GraphData.from_pyg reads",
    ),  # noqa: E501
    (
        "functions of PyG: to_dense_adj",
        "PyG's to_dense_adj cannot run on a graph that is cut: multiply by the adjacency with dg.ops.spmm(graph, x), or a layer with data.edge_index",
    ),  # noqa: E501
    (
        "functions of PyG: to_scipy",
        "PyG's to_scipy_sparse_matrix cannot run on a graph that is cut: multiply by the adjacency with dg.ops.spmm(graph, x), or a layer with data.edge_index",
    ),  # noqa: E501
    (
        "functions of PyG: to_networkx",
        "PyG's to_networkx cannot run on a graph that is cut: take it before the graph is cut, on the Data that dg.GraphData.from_pyg reads",
    ),  # noqa: E501
    (
        "functions of PyG: get_laplacian",
        "rank 0 calls allgather at torch_geometric.nn.conv.simple_conv_SimpleConv_propagate_vx0e20qm.py:209, rank 1 allgather at torch_geometric.nn.conv.simple_conv_SimpleConv_propagate_qpequ7nd.py:209: every rank must make the same calls, also for a number that only one of them prints",
    ),  # noqa: E501
    (
        "functions of PyG: k_hop_subgraph",
        "PyG's k_hop_subgraph cannot run on a graph that is cut: mask rows, x[mask], or take it before the graph is cut, on the Data that dg.GraphData.from_pyg reads",
    ),  # noqa: E501
    (
        "functions of PyG: subgraph",
        "PyG's subgraph cannot run on a graph that is cut: mask rows, x[mask], or take it before the graph is cut, on the Data that dg.GraphData.from_pyg reads",
    ),  # noqa: E501
    (
        "functions of PyG: subgraph of a mask",
        "PyG's subgraph cannot run on a graph that is cut: mask rows, x[mask], or take it before the graph is cut, on the Data that dg.GraphData.from_pyg reads",
    ),  # noqa: E501
    (
        "functions of PyG: one_hot",
        "torch's scatter_ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (y.new_zeros(N, C))",
    ),  # noqa: E501
    (
        "functions of PyG: to_edge_index",
        "PyG's to_torch_csr_tensor cannot run on a graph that is cut: multiply by the adjacency with dg.ops.spmm(graph, x), or a layer with data.edge_index",
    ),  # noqa: E501
    (
        "functions of PyG: sort_edge_index",
        "PyG's sort_edge_index cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
    ),  # noqa: E501
    (
        "functions of PyG: dense_to_sparse",
        "torch's matmul over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
    ),  # noqa: E501
    (
        "functions of PyG: tree_decomposition",
        "torch's cumsum over the rows of all ranks cannot run distributed: leave out= out",
    ),  # noqa: E501
    (
        "functions of PyG: both directions",
        "arcs cannot be added to the edge_index of a DistGraph, but for one self-loop at each of its vertices (add_self_loops with num_nodes=x.size(0)): add them before the graph is cut",
    ),  # noqa: E501
    (
        "functions of PyG: sparse adjacency",
        "torch's _sparse_coo_tensor_with_dims_and_tensors on edge_index cannot run distributed: the arcs of a vertex lie on several ranks: aggregate with sum, mean, max, min, softmax, std or var over edge_index, or use the layers of distgnn.nn",
    ),  # noqa: E501
    (
        "functions of PyG: arcs to a list",
        "torch's t on edge_index cannot run distributed: the arcs of a vertex lie on several ranks: aggregate with sum, mean, max, min, softmax, std or var over edge_index, or use the layers of distgnn.nn",
    ),  # noqa: E501
    (
        "functions of PyG: arcs to numpy",
        "torch's numpy on edge_index cannot run distributed: the arcs of a vertex lie on several ranks: aggregate with sum, mean, max, min, softmax, std or var over edge_index, or use the layers of distgnn.nn",
    ),  # noqa: E501
    (
        "pyg: FastRGCNConv",
        "torch's scatter_ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (y.new_zeros(N, C))",
    ),  # noqa: E501
    (
        "pyg: PPFConv",
        "torch's cross over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "pyg: HypergraphConv",
        "57 rows for a part of 61 owned vertices: give one row per vertex that this rank owns (graph.x has them)",
    ),  # noqa: E501
    (
        "pyg: WLConv",
        "PyG's sort_edge_index cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
    ),  # noqa: E501
    (
        "pyg: EGConv std",
        "arcs cannot be added to the edge_index of a DistGraph, but for one self-loop at each of its vertices (add_self_loops with num_nodes=x.size(0)): add them before the graph is cut",
    ),  # noqa: E501
    (
        "pyg: HGTConv",
        "rows of shape [2, 61, 3] cannot take the shape [122, 3]: rows of all ranks cannot be merged with a dimension before them, or split: keep the first dimension as it is",
    ),  # noqa: E501
    (
        "pyg: HEATConv",
        "torch's sort over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "pyg: GPSConv",
        "torch's multi_head_attention_forward over the rows of all ranks cannot run distributed: attention of every row with every row needs all rows: use attention along arcs (GATConv)",
    ),  # noqa: E501
    (
        "pyg: GPSConv norm",
        "torch's multi_head_attention_forward over the rows of all ranks cannot run distributed: attention of every row with every row needs all rows: use attention along arcs (GATConv)",
    ),  # noqa: E501
    (
        "pyg: GPSConv performer",
        "torch's einsum over the rows of all ranks cannot run distributed: write every letter and the result: 'nd,de->ne'",
    ),  # noqa: E501
    (
        "pyg: GPSConv without attention",
        "torch's multi_head_attention_forward over the rows of all ranks cannot run distributed: attention of every row with every row needs all rows: use attention along arcs (GATConv)",
    ),  # noqa: E501
    (
        "pyg: MeshCNNConv",
        "torch's __setitem__ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (torch.zeros_like)",
    ),  # noqa: E501
    (
        "pyg: InnerProductDecoder all",
        "torch's matmul over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
    ),  # noqa: E501
    (
        "pyg: GraphUNet",
        "PyG's to_torch_csr_tensor cannot run on a graph that is cut: multiply by the adjacency with dg.ops.spmm(graph, x), or a layer with data.edge_index",
    ),  # noqa: E501
    (
        "pyg: DeepGCNLayer recomputed",
        "a torch.autograd.Function of one's own, checkpoint(use_reentrant=True) or a backward hook of a module has made these rows, and their gradient would be lost: give the function x.to_local() and take graph.rows_of(result), or write use_reentrant=False",
    ),  # noqa: E501
    (
        "pyg: LabelPropagation",
        "torch's scatter_ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (y.new_zeros(N, C))",
    ),  # noqa: E501
    (
        "pyg: LabelPropagation ids",
        "torch's scatter_ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (y.new_zeros(N, C))",
    ),  # noqa: E501
    (
        "pyg: CorrectAndSmooth",
        "torch's scatter_ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (y.new_zeros(N, C))",
    ),  # noqa: E501
    (
        "pyg: CorrectAndSmooth autoscale",
        "torch's scatter_ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (y.new_zeros(N, C))",
    ),  # noqa: E501
    (
        "pyg: CorrectAndSmooth ids",
        "torch's scatter_ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (y.new_zeros(N, C))",
    ),  # noqa: E501
    (
        "pyg: AttentiveFP",
        "edge_index has the vertices of one process and x those of one rank: give the layer the DistGraph, or its graph.edge_index, instead of edge_index",
    ),  # noqa: E501
    (
        "pyg: GroupAddRev",
        "torch's untyped_storage over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "pyg: SGFormer",
        "torch's __setitem__ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (torch.zeros_like)",
    ),  # noqa: E501
    (
        "pyg: HeteroLinear",
        "torch's sort over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "pyg: DenseGCNConv",
        "PyG's to_dense_adj cannot run on a graph that is cut: multiply by the adjacency with dg.ops.spmm(graph, x), or a layer with data.edge_index",
    ),  # noqa: E501
    (
        "pyg: DenseSAGEConv",
        "PyG's to_dense_adj cannot run on a graph that is cut: multiply by the adjacency with dg.ops.spmm(graph, x), or a layer with data.edge_index",
    ),  # noqa: E501
    (
        "pyg: DMoNPooling",
        "PyG's to_dense_adj cannot run on a graph that is cut: multiply by the adjacency with dg.ops.spmm(graph, x), or a layer with data.edge_index",
    ),  # noqa: E501
    (
        "pyg: dense_diff_pool",
        "PyG's to_dense_adj cannot run on a graph that is cut: multiply by the adjacency with dg.ops.spmm(graph, x), or a layer with data.edge_index",
    ),  # noqa: E501
    (
        "pyg: TopKPooling",
        "torch's sort over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "pyg: SAGPooling",
        "torch's sort over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "pyg: EdgePooling",
        "torch's argsort over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "pyg: ClusterPooling",
        "PyG's to_scipy_sparse_matrix cannot run on a graph that is cut: multiply by the adjacency with dg.ops.spmm(graph, x), or a layer with data.edge_index",
    ),  # noqa: E501
    (
        "pyg: ASAPooling",
        "torch's sort over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "pyg: MemPooling",
        "torch's conv2d over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "pyg: SimpleConv of MulAggregation",
        "torch's scatter_reduce_ into an ordinary tensor of all vertices cannot run distributed: make it from rows (x.new_zeros, torch.zeros_like)",
    ),  # noqa: E501
    (
        "pyg: MulAggregation by targets",
        "torch's scatter_reduce_ into an ordinary tensor of all vertices cannot run distributed: make it from rows (x.new_zeros, torch.zeros_like)",
    ),  # noqa: E501
    (
        "pyg: MulAggregation of all",
        "torch's scatter_reduce_ over the rows of all ranks cannot run distributed: take sum, mean, amax or amin, with include_self=False",
    ),  # noqa: E501
    (
        "pyg: SimpleConv of MedianAggregation",
        "torch's cumsum over the rows of all ranks cannot run distributed: leave out= out",
    ),  # noqa: E501
    (
        "pyg: MedianAggregation by targets",
        "torch's cumsum over the rows of all ranks cannot run distributed: leave out= out",
    ),  # noqa: E501
    (
        "pyg: MedianAggregation of all",
        "torch's sort over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "pyg: SimpleConv of QuantileAggregation",
        "torch's cumsum over the rows of all ranks cannot run distributed: leave out= out",
    ),  # noqa: E501
    (
        "pyg: QuantileAggregation by targets",
        "torch's cumsum over the rows of all ranks cannot run distributed: leave out= out",
    ),  # noqa: E501
    (
        "pyg: QuantileAggregation of all",
        "torch's sort over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "pyg: LSTMAggregation of all",
        "torch's __setitem__ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (torch.zeros_like)",
    ),  # noqa: E501
    (
        "pyg: GRUAggregation of all",
        "torch's __setitem__ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (torch.zeros_like)",
    ),  # noqa: E501
    (
        "pyg: Set2Set by targets",
        "torch's lstm over the rows of all ranks cannot run distributed: give it rows [N, L, D] with batch_first=True and without dropout between layers",
    ),  # noqa: E501
    (
        "pyg: SortAggregation of all",
        "torch's __setitem__ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (torch.zeros_like)",
    ),  # noqa: E501
    (
        "pyg: MLPAggregation of all",
        "torch's __setitem__ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (torch.zeros_like)",
    ),  # noqa: E501
    (
        "pyg: SetTransformerAggregation of all",
        "torch's __setitem__ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (torch.zeros_like)",
    ),  # noqa: E501
    (
        "pyg: GraphMultisetTransformer of all",
        "torch's __setitem__ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (torch.zeros_like)",
    ),  # noqa: E501
    (
        "pyg: SimpleConv of MultiAggregation",
        "torch's scatter_add_ into an ordinary tensor of all vertices cannot run distributed: make it from rows (x.new_zeros, torch.zeros_like)",
    ),  # noqa: E501
    (
        "pyg: MultiAggregation by targets",
        "torch's scatter_add_ into an ordinary tensor of all vertices cannot run distributed: make it from rows (x.new_zeros, torch.zeros_like)",
    ),  # noqa: E501
    (
        "pyg: SimpleConv of DegreeScalerAggregation",
        "torch's scatter_add_ into an ordinary tensor of all vertices cannot run distributed: make it from rows (x.new_zeros, torch.zeros_like)",
    ),  # noqa: E501
    (
        "pyg: DegreeScalerAggregation by targets",
        "torch's scatter_add_ into an ordinary tensor of all vertices cannot run distributed: make it from rows (x.new_zeros, torch.zeros_like)",
    ),  # noqa: E501
    (
        "pyg: LCMAggregation of all",
        "torch's __setitem__ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (torch.zeros_like)",
    ),  # noqa: E501
    (
        "pyg: EquilibriumAggregation by targets",
        "torch's autograd.grad over the rows of all ranks cannot run distributed: a second derivative (create_graph=True) of rows is not there",
    ),  # noqa: E501
    (
        "pyg: EquilibriumAggregation of all",
        "torch's autograd.grad over the rows of all ranks cannot run distributed: a second derivative (create_graph=True) of rows is not there",
    ),  # noqa: E501
    (
        "pyg: PatchTransformerAggregation of all",
        "torch's __setitem__ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (torch.zeros_like)",
    ),  # noqa: E501
    (
        "statistics of rows: product over rows",
        "torch's prod over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "norms on some rows: LocalResponseNorm on all rows",
        "torch's local_response_norm over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "norms on some rows: LocalResponseNorm on masked rows",
        "torch's local_response_norm over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "norms on some rows: LocalResponseNorm on rows by ids",
        "torch's local_response_norm over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "rows x rows: gram matrix",
        "torch's matmul over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
    ),  # noqa: E501
    (
        "rows x rows: sigmoid of the gram matrix",
        "torch's mm over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
    ),  # noqa: E501
    (
        "rows x rows: matmul with a transposed",
        "torch's matmul over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
    ),  # noqa: E501
    (
        "rows x rows: cosine similarities",
        "torch's matmul over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
    ),  # noqa: E501
    (
        "rows x rows: contrast of GRACE",
        "torch's matmul over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
    ),  # noqa: E501
    (
        "rows x rows: decoder of VGAE",
        "torch's matmul over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
    ),  # noqa: E501
    (
        "rows x rows: distances",
        "torch's cdist over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
    ),  # noqa: E501
    (
        "rows x rows: einsum of pairs",
        "torch's einsum over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
    ),  # noqa: E501
    (
        "rows x rows: addmm",
        "torch's addmm over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
    ),  # noqa: E501
    (
        "rows x rows: masked by all",
        "torch's matmul over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
    ),  # noqa: E501
    (
        "rows x rows: attention between vertices",
        "torch's scaled_dot_product_attention over the rows of all ranks cannot run distributed: attention of every row with every row needs all rows: use attention along arcs (GATConv)",
    ),  # noqa: E501
    (
        "rows x rows: broadcast pairs",
        "torch's sub of rows with rows, [61, 1, 8] and [1, 61, 8], would make a row for each pair: take the pairs that are needed, rows[ids], or use dg.ops along arcs",
    ),  # noqa: E501
    (
        "rows x rows: outer of a column",
        "torch's mul of rows with rows, [61, 1] and [1, 61], would make a row for each pair: take the pairs that are needed, rows[ids], or use dg.ops along arcs",
    ),  # noqa: E501
    (
        "rows x rows: kronecker",
        "torch's kron over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "rows x rows: singular values",
        "torch's linalg_svdvals over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "rows x rows: least squares",
        "torch's linalg_lstsq over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: sort over rows",
        "torch's sort over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: argsort",
        "torch's argsort over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: topk over rows",
        "torch's topk over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: median of all",
        "torch's median over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: median over rows",
        "torch's median over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: quantile",
        "torch's quantile over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: kthvalue",
        "torch's kthvalue over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: mode",
        "torch's mode over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: cumsum over rows",
        "torch's cumsum over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: flip",
        "torch's flip over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: roll",
        "torch's roll over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: unbind rows",
        "torch's unbind over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: iterate",
        "rows of all ranks cannot be iterated over one by one: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: diff",
        "torch's diff over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: searchsorted",
        "torch's sort over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: histc",
        "torch's histc over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
    ),  # noqa: E501
    (
        "order of rows: repeat interleave",
        "torch's repeat_interleave over the rows of all ranks cannot run distributed: rows of all ranks cannot be repeated one by one: write x[ids]",
    ),  # noqa: E501
    (
        "elementwise and columns: column set",
        "torch's __setitem__ over the rows of all ranks cannot run distributed: write columns one by one, x[mask, 3] = 1",
    ),  # noqa: E501
    (
        "elementwise and columns: pad rows",
        "torch's pad over the rows of all ranks cannot run distributed: rows of all ranks cannot be padded: add vertices before the graph is cut",
    ),  # noqa: E501
    (
        "script: pyg correct smooth",
        "torch's scatter_ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (y.new_zeros(N, C))",
    ),  # noqa: E501
    (
        "script: pyg grace",
        "torch's matmul over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
    ),  # noqa: E501
]
