"""What was run beside the plain library on 1, 2 and 3 ranks: written by `tests/bench/peers/run.py --write`.

KINDS: (kind, equal on 1, 2 and 3 ranks, refused in one line on several, of these equal on one); REFUSED: (the line, the
scripts and layers). Over 400 lines: a table, written by a program.
"""

KINDS = [
    ("layers of dgl, whole", 63, 13, 3),
    ("layers of dgl, in place", 50, 9, 0),
    ("layers of dgl, mask", 50, 9, 0),
    ("layers of dgl, ids", 50, 9, 0),
    ("layers of dgl, table", 54, 9, 0),
    ("layers of dgl, no gradient", 63, 13, 3),
    ("habits of scripts", 20, 0, 0),
    ("global ids", 35, 5, 4),
    ("tables of vertices", 31, 1, 0),
    ("own random draws", 41, 11, 8),
    ("changes in place", 32, 2, 1),
    ("torch's modes", 25, 5, 0),
    ("habits of Data", 52, 18, 0),
    ("functions of PyG", 23, 22, 4),
    ("layers of pyg, whole", 174, 58, 32),
    ("layers of pyg, in place", 124, 25, 15),
    ("layers of pyg, mask", 138, 27, 16),
    ("layers of pyg, ids", 127, 22, 16),
    ("layers of pyg, table", 112, 28, 17),
    ("layers of pyg, no gradient", 153, 43, 31),
    ("statistics of rows", 66, 1, 1),
    ("norms on some rows", 41, 3, 3),
    ("rows x rows", 7, 16, 16),
    ("order of rows", 44, 17, 17),
    ("losses", 43, 0, 0),
    ("elementwise and columns", 26, 2, 2),
    ("ordinary scripts", 13, 2, 2),
]
REFUSED = [
    (
        "update_all(…, _lstm_reducer) cannot run distributed, because the arcs of a vertex lie on several ranks: reduce with the built-in functions dgl.function.sum/mean/max/min, or use the layers of distgnn.nn",
        "dgl: SAGEConv lstm",
    ),
    ("apply_edges on some edges cannot run distributed: leave edges out and mask the result", "dgl: GatedGraphConv"),
    (
        "update_all(…, reduce_func) cannot run distributed, because the arcs of a vertex lie on several ranks: reduce with the built-in functions dgl.function.sum/mean/max/min, or use the layers of distgnn.nn",
        "dgl: AtomicConv, dgl: PNAConv, dgl: DGNConv",
    ),
    (
        "graph.remove_self_loop cannot run distributed: a rank has its own arcs only: use update_all, apply_edges or distgnn.ops, or prepare the graph before it is cut (GraphData.from_dgl, distgnn partition)",
        "dgl: TWIRLSConv",
    ),
    (
        "torch's storage over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "dgl: GroupRevRes",
    ),
    ("dgl.nn.Sequential takes a DGLGraph only: keep its layers in a ModuleList, and call each one", "dgl: Sequential"),
    (
        "update_all(…, <lambda>) cannot run distributed, because the arcs of a vertex lie on several ranks: reduce with the built-in functions dgl.function.sum/mean/max/min, or use the layers of distgnn.nn",
        "dgl: own reducer",
    ),
    (
        "dgl.topk_nodes needs a whole graph, and a rank has its own arcs only: prepare it before it is cut (GraphData.from_dgl, distgnn partition)",
        "dgl: SortPooling",
    ),
    (
        "torch's new over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "dgl: SetTransformerEncoder",
    ),
    (
        "torch's add of rows with rows, [1, 61, 1] and [1, 1, 61], would make a row for each pair: take the pairs that are needed, rows[ids], or use dg.ops along arcs",
        "dgl: KNNGraph",
    ),
    (
        "torch's cdist over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
        "dgl: RadiusGraph, rows x rows: distances",
    ),
    (
        "torch's gather over the rows of all ranks cannot run distributed: write x[ids] for rows by id; gather takes columns, dim=1",
        "global ids: gather",
    ),
    (
        "torch's __setitem__ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (torch.zeros_like)",
        "global ids: set by ids, pyg: MeshCNNConv, pyg: SGFormer, pyg: LSTMAggregation of all, pyg: GRUAggregation of all, pyg: SortAggregation of all, pyg: MLPAggregation of all, pyg: SetTransformerAggregation of all, pyg: GraphMultisetTransformer of all, pyg: LCMAggregation of all, pyg: PatchTransformerAggregation of all",
    ),
    (
        "torch's index_put over the rows of all ranks cannot run distributed: write x[mask] = values",
        "global ids: index_put",
    ),
    ("index 1000000 is out of bounds for 61 rows of all ranks", "global ids: id too large"),
    (
        "torch's matmul over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
        "global ids: score of all pairs of some, functions of PyG: dense_to_sparse, pyg: InnerProductDecoder all, rows x rows: gram matrix, rows x rows: matmul with a transposed, rows x rows: cosine similarities, rows x rows: contrast of GRACE, rows x rows: decoder of VGAE, rows x rows: masked by all, script: pyg grace",
    ),
    (
        "FastRGCNConv (torch's add on edge_index) cannot run distributed: the arcs of a vertex lie on several ranks: aggregate with sum, mean, max, min, softmax, std or var over edge_index, or use the layers of distgnn.nn",
        "tables of vertices: featureless RGCN by relation",
    ),
    (
        "torch's alpha_dropout over the rows of all ranks cannot run distributed: draw with torch.rand_like, randn_like, randint_like, bernoulli or F.dropout",
        "own random draws: alpha dropout, own random draws: nn.AlphaDropout",
    ),
    (
        "torch's feature_alpha_dropout over the rows of all ranks cannot run distributed: draw with torch.rand_like, randn_like, randint_like, bernoulli or F.dropout",
        "own random draws: feature dropout",
    ),
    (
        "torch's multinomial over the rows of all ranks cannot run distributed: draw with torch.rand_like, randn_like, randint_like, bernoulli or F.dropout",
        "own random draws: multinomial",
    ),
    (
        "torch's poisson over the rows of all ranks cannot run distributed: draw with torch.rand_like, randn_like, randint_like, bernoulli or F.dropout",
        "own random draws: poisson",
    ),
    (
        "torch's _is_all_true over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "own random draws: distribution, own random draws: categorical",
    ),
    (
        "PyG's is_undirected cannot run on a graph that is cut: write data.is_undirected()",
        "own random draws: dropout of SuperGATConv, functions of PyG: is_undirected",
    ),
    (
        "torch's einsum over the rows of all ranks cannot run distributed: write every letter and the result: 'nd,de->ne'",
        "own random draws: dropout of GPSConv, pyg: GPSConv performer",
    ),
    (
        "PyG's dropout_node cannot run on a graph that is cut: drop arcs with dropout_edge, or rows with a mask",
        "own random draws: dropout_node",
    ),
    (
        "PyG's negative_sampling cannot run on a graph that is cut: take pairs from dg.negative_edges(graph, count)",
        "own random draws: negative_sampling",
    ),
    (
        "torch's index_add_ over the rows of all ranks cannot run distributed: into rows of vertices: along arcs give graph.edge_index, by id write x[ids] = values; into groups give an ordinary tensor of one row for each group",
        "changes in place: index_add_",
    ),
    (
        "torch's scatter_ over the rows of all ranks cannot run distributed: an ordinary tensor cannot take the rows of one rank: make it from rows (y.new_zeros(N, C))",
        "changes in place: one-hot by scatter_, functions of PyG: one_hot, pyg: FastRGCNConv, pyg: LabelPropagation, pyg: LabelPropagation ids, pyg: CorrectAndSmooth, pyg: CorrectAndSmooth autoscale, pyg: CorrectAndSmooth ids, script: pyg correct smooth",
    ),
    (
        "GCNConv (torch's view_as on edge_index) cannot run distributed: the arcs of a vertex lie on several ranks: aggregate with sum, mean, max, min, softmax, std or var over edge_index, or use the layers of distgnn.nn",
        "torch's modes: hooks on modules",
    ),
    (
        "a torch.autograd.Function of one's own, checkpoint(use_reentrant=True) or a backward hook of a module has made these rows, and their gradient would be lost: give the function x.to_local() and take graph.rows_of(result), or write use_reentrant=False",
        "torch's modes: checkpoint, use_reentrant=True, pyg: DeepGCNLayer recomputed",
    ),
    (
        "torch's autograd.grad over the rows of all ranks cannot run distributed: a second derivative (create_graph=True) of rows is not there",
        "torch's modes: second derivatives, pyg: EquilibriumAggregation by targets, pyg: EquilibriumAggregation of all",
    ),
    (
        "the transforms of torch.func (grad, vmap, jacrev) cannot pass an exchange of rows: take gradients with backward() or torch.autograd.grad; functional_call needs no transform and works",
        "torch's modes: torch.func.grad",
    ),
    (
        "torch's sin over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "torch's modes: torch.func.vmap",
    ),
    (
        "graph.subgraph cannot run distributed: a rank has its own arcs only: use update_all, apply_edges or distgnn.ops, or prepare the graph before it is cut (GraphData.from_dgl, distgnn partition)",
        "habits of Data: subgraph",
    ),
    (
        "arcs that are there twice cannot be merged in a graph that is cut: transform the graph before it is cut: dg.GraphData.from_pyg(transform(data)), then partition it",
        "habits of Data: coalesce",
    ),
    (
        "T.ToUndirected cannot run on a graph that is cut: cut it with direction='both' (distgnn partition --direction both)",
        "habits of Data: T.ToUndirected",
    ),
    (
        "T.AddSelfLoops cannot run on a graph that is cut: leave it out: layers add their own; or cut it with self_loops='add'",
        "habits of Data: T.AddSelfLoops",
    ),
    (
        "T.GCNNorm cannot run on a graph that is cut: leave it out: GCNConv normalises by itself",
        "habits of Data: T.GCNNorm",
    ),
    (
        "T.LocalDegreeProfile cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
        "habits of Data: T.LocalDegreeProfile",
    ),
    (
        "T.OneHotDegree cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
        "habits of Data: T.OneHotDegree",
    ),
    (
        "T.AddLaplacianEigenvectorPE cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
        "habits of Data: T.AddLaplacianEigenvectorPE",
    ),
    (
        "T.AddRandomWalkPE cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
        "habits of Data: T.AddRandomWalkPE",
    ),
    (
        "T.SIGN cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
        "habits of Data: T.SIGN",
    ),
    (
        "T.LargestConnectedComponents cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
        "habits of Data: T.LargestConnectedComponents",
    ),
    (
        "T.SVDFeatureReduction cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
        "habits of Data: T.SVDFeatureReduction",
    ),
    (
        "T.RemoveIsolatedNodes cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
        "habits of Data: T.RemoveIsolatedNodes",
    ),
    (
        "T.Pad cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
        "habits of Data: T.Pad",
    ),
    (
        "T.RootedEgoNets cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
        "habits of Data: T.RootedEgoNets",
    ),
    (
        "T.VirtualNode cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
        "habits of Data: T.VirtualNode",
    ),
    (
        "T.LineGraph cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
        "habits of Data: T.LineGraph",
    ),
    (
        "T.FeaturePropagation cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
        "habits of Data: T.FeaturePropagation",
    ),
    (
        "PyG's to_undirected cannot run on a graph that is cut: cut the graph with direction='both' (distgnn partition --direction both)",
        "functions of PyG: to_undirected",
    ),
    (
        "PyG's coalesce cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
        "functions of PyG: coalesce",
    ),
    (
        "PyG's contains_isolated_nodes cannot run on a graph that is cut: write data.has_isolated_nodes()",
        "functions of PyG: contains_isolated_nodes",
    ),
    (
        "torch_geometric.utils.homophily(method='edge_insensitive') cannot run on the edge_index of a DistGraph: compute it on the whole graph before partitioning, in one process",
        "functions of PyG: homophily insensitive",
    ),
    (
        "PyG's assortativity cannot run on a graph that is cut: take it before the graph is cut, on the Data that dg.GraphData.from_pyg reads",
        "functions of PyG: assortativity",
    ),
    (
        "PyG's to_dense_adj cannot run on a graph that is cut: multiply by the adjacency with dg.ops.spmm(graph, x), or a layer with data.edge_index",
        "functions of PyG: to_dense_adj, pyg: DenseGCNConv, pyg: DenseSAGEConv, pyg: DMoNPooling, pyg: dense_diff_pool",
    ),
    (
        "PyG's to_scipy_sparse_matrix cannot run on a graph that is cut: multiply by the adjacency with dg.ops.spmm(graph, x), or a layer with data.edge_index",
        "functions of PyG: to_scipy, pyg: ClusterPooling",
    ),
    (
        "PyG's to_networkx cannot run on a graph that is cut: take it before the graph is cut, on the Data that dg.GraphData.from_pyg reads",
        "functions of PyG: to_networkx",
    ),
    (
        "rank 0 calls allgather at torch_geometric.nn.conv.simple_conv_SimpleConv_propagate_vx0e20qm.py:209, rank 1 allgather at torch_geometric.nn.conv.simple_conv_SimpleConv_propagate_qpequ7nd.py:209: every rank must make the same calls, also for a number that only one of them prints",
        "functions of PyG: get_laplacian",
    ),
    (
        "PyG's k_hop_subgraph cannot run on a graph that is cut: mask rows, x[mask], or take it before the graph is cut, on the Data that dg.GraphData.from_pyg reads",
        "functions of PyG: k_hop_subgraph",
    ),
    (
        "PyG's subgraph cannot run on a graph that is cut: mask rows, x[mask], or take it before the graph is cut, on the Data that dg.GraphData.from_pyg reads",
        "functions of PyG: subgraph, functions of PyG: subgraph of a mask",
    ),
    (
        "PyG's to_torch_csr_tensor cannot run on a graph that is cut: multiply by the adjacency with dg.ops.spmm(graph, x), or a layer with data.edge_index",
        "functions of PyG: to_edge_index, pyg: GraphUNet, pyg: ASAPooling",
    ),
    (
        "PyG's sort_edge_index cannot run on a graph that is cut: transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it",
        "functions of PyG: sort_edge_index, pyg: WLConv",
    ),
    (
        "torch's cumsum over the rows of all ranks cannot run distributed: leave out= out",
        "functions of PyG: tree_decomposition",
    ),
    (
        "arcs cannot be added to the edge_index of a DistGraph, but for one self-loop at each of its vertices (add_self_loops with num_nodes=x.size(0)): add them before the graph is cut",
        "functions of PyG: both directions, pyg: EGConv std",
    ),
    (
        "torch's _sparse_coo_tensor_with_dims_and_tensors on edge_index cannot run distributed: the arcs of a vertex lie on several ranks: aggregate with sum, mean, max, min, softmax, std or var over edge_index, or use the layers of distgnn.nn",
        "functions of PyG: sparse adjacency",
    ),
    (
        "torch's t on edge_index cannot run distributed: the arcs of a vertex lie on several ranks: aggregate with sum, mean, max, min, softmax, std or var over edge_index, or use the layers of distgnn.nn",
        "functions of PyG: arcs to a list",
    ),
    (
        "torch's numpy on edge_index cannot run distributed: the arcs of a vertex lie on several ranks: aggregate with sum, mean, max, min, softmax, std or var over edge_index, or use the layers of distgnn.nn",
        "functions of PyG: arcs to numpy",
    ),
    (
        "torch's cross over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "pyg: PPFConv",
    ),
    (
        "57 rows for a part of 61 owned vertices: give one row per vertex that this rank owns (graph.x has them)",
        "pyg: HypergraphConv",
    ),
    (
        "HGTConv (torch's add_ on edge_index) cannot run distributed: the arcs of a vertex lie on several ranks: aggregate with sum, mean, max, min, softmax, std or var over edge_index, or use the layers of distgnn.nn",
        "pyg: HGTConv",
    ),
    (
        "torch's sort over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "pyg: HEATConv, pyg: HeteroLinear, pyg: TopKPooling, pyg: SAGPooling, pyg: MedianAggregation of all, pyg: QuantileAggregation of all, order of rows: sort over rows, order of rows: searchsorted",
    ),
    (
        "torch's multi_head_attention_forward over the rows of all ranks cannot run distributed: attention of every row with every row needs all rows: use attention along arcs (GATConv)",
        "pyg: GPSConv, pyg: GPSConv norm, pyg: GPSConv without attention",
    ),
    (
        "edge_index has the vertices of one process and x those of one rank: give the layer the DistGraph, or its graph.edge_index, instead of edge_index",
        "pyg: AttentiveFP",
    ),
    (
        "torch's untyped_storage over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "pyg: GroupAddRev",
    ),
    (
        "EdgePooling (torch's __getitem__ on edge_index) cannot run distributed: the arcs of a vertex lie on several ranks: aggregate with sum, mean, max, min, softmax, std or var over edge_index, or use the layers of distgnn.nn",
        "pyg: EdgePooling",
    ),
    (
        "torch's conv2d over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "pyg: MemPooling",
    ),
    (
        "torch's scatter_reduce_ into an ordinary tensor of all vertices cannot run distributed: make it from rows (x.new_zeros, torch.zeros_like)",
        "pyg: SimpleConv of MulAggregation, pyg: MulAggregation by targets",
    ),
    (
        "torch's scatter_reduce_ over the rows of all ranks cannot run distributed: take sum, mean, amax or amin, with include_self=False",
        "pyg: MulAggregation of all",
    ),
    (
        "MedianAggregation (torch's take_along_dim on edge_index) cannot run distributed: the arcs of a vertex lie on several ranks: aggregate with sum, mean, max, min, softmax, std or var over edge_index, or use the layers of distgnn.nn",
        "pyg: SimpleConv of MedianAggregation, pyg: MedianAggregation by targets",
    ),
    (
        "QuantileAggregation (torch's take_along_dim on edge_index) cannot run distributed: the arcs of a vertex lie on several ranks: aggregate with sum, mean, max, min, softmax, std or var over edge_index, or use the layers of distgnn.nn",
        "pyg: SimpleConv of QuantileAggregation, pyg: QuantileAggregation by targets",
    ),
    (
        "torch's lstm over the rows of all ranks cannot run distributed: give it rows [N, L, D] with batch_first=True and without dropout between layers",
        "pyg: Set2Set by targets",
    ),
    (
        "torch's scatter_add_ into an ordinary tensor of all vertices cannot run distributed: make it from rows (x.new_zeros, torch.zeros_like)",
        "pyg: SimpleConv of MultiAggregation, pyg: MultiAggregation by targets, pyg: SimpleConv of DegreeScalerAggregation, pyg: DegreeScalerAggregation by targets",
    ),
    (
        "torch's prod over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "statistics of rows: product over rows",
    ),
    (
        "torch's local_response_norm over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "norms on some rows: LocalResponseNorm on all rows, norms on some rows: LocalResponseNorm on masked rows, norms on some rows: LocalResponseNorm on rows by ids",
    ),
    (
        "torch's mm over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
        "rows x rows: sigmoid of the gram matrix",
    ),
    (
        "torch's einsum over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
        "rows x rows: einsum of pairs",
    ),
    (
        "torch's addmm over the rows of all ranks cannot run distributed: it makes a number for each pair of rows of all ranks: score the pairs that are needed, (z[ids_a] * z[ids_b]).sum(-1), take negatives from dg.negative_edges, or run on a folder of one part",
        "rows x rows: addmm",
    ),
    (
        "torch's scaled_dot_product_attention over the rows of all ranks cannot run distributed: attention of every row with every row needs all rows: use attention along arcs (GATConv)",
        "rows x rows: attention between vertices",
    ),
    (
        "torch's sub of rows with rows, [61, 1, 8] and [1, 61, 8], would make a row for each pair: take the pairs that are needed, rows[ids], or use dg.ops along arcs",
        "rows x rows: broadcast pairs",
    ),
    (
        "torch's mul of rows with rows, [61, 1] and [1, 61], would make a row for each pair: take the pairs that are needed, rows[ids], or use dg.ops along arcs",
        "rows x rows: outer of a column",
    ),
    (
        "torch's kron over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "rows x rows: kronecker",
    ),
    (
        "torch's linalg_svdvals over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "rows x rows: singular values",
    ),
    (
        "torch's linalg_lstsq over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "rows x rows: least squares",
    ),
    (
        "torch's argsort over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "order of rows: argsort",
    ),
    (
        "torch's topk over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "order of rows: topk over rows",
    ),
    (
        "torch's median over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "order of rows: median of all, order of rows: median over rows",
    ),
    (
        "torch's quantile over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "order of rows: quantile",
    ),
    (
        "torch's kthvalue over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "order of rows: kthvalue",
    ),
    (
        "torch's mode over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "order of rows: mode",
    ),
    (
        "torch's cumsum over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "order of rows: cumsum over rows",
    ),
    (
        "torch's flip over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "order of rows: flip",
    ),
    (
        "torch's roll over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "order of rows: roll",
    ),
    (
        "torch's unbind over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "order of rows: unbind rows",
    ),
    (
        "rows of all ranks cannot be iterated over one by one: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "order of rows: iterate",
    ),
    (
        "torch's diff over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "order of rows: diff",
    ),
    (
        "torch's histc over the rows of all ranks cannot run distributed: use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them",
        "order of rows: histc",
    ),
    (
        "torch's repeat_interleave over the rows of all ranks cannot run distributed: rows of all ranks cannot be repeated one by one: write x[ids]",
        "order of rows: repeat interleave",
    ),
    (
        "torch's __setitem__ over the rows of all ranks cannot run distributed: write columns one by one, x[mask, 3] = 1",
        "elementwise and columns: column set",
    ),
    (
        "torch's pad over the rows of all ranks cannot run distributed: rows of all ranks cannot be padded: add vertices before the graph is cut",
        "elementwise and columns: pad rows",
    ),
]
