"""Whole training loops for PyG without labels: views, links, autoencoders; one line is changed."""

import copy
import math

import torch
import torch.nn.functional as F
from loops import MLP2, Net, accuracy, descend, loop
from torch import nn
from torch_geometric.nn import ARGVA, GATConv, GCNConv, SAGEConv


@loop()
def bootstrapped_views_with_a_moving_target(data):
    """BGRL: an online network, its average as the target, a cosine loss."""
    online, predictor = Net(GCNConv, 16, out=16), MLP2(16, 16, 16)
    target = copy.deepcopy(online)
    for parameter in target.parameters():
        parameter.requires_grad = False
    optimizer = torch.optim.AdamW([*online.parameters(), *predictor.parameters()], lr=1e-3, weight_decay=1e-5)
    losses = []
    for step in range(4):
        x1, x2 = (data.x * torch.bernoulli(torch.full((data.num_features,), 1 - p)) for p in (0.2, 0.1))
        q1, q2 = predictor(online(x1, data.edge_index)), predictor(online(x2, data.edge_index))
        with torch.no_grad():
            y1, y2 = target(x2, data.edge_index).detach(), target(x1, data.edge_index).detach()
        loss = 2 - F.cosine_similarity(q1, y1, dim=-1).mean() - F.cosine_similarity(q2, y2, dim=-1).mean()
        descend(optimizer, loss)
        mm = 1 - 0.01 * (math.cos(math.pi * step / 4) + 1) / 2
        for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
            slow.data.mul_(mm).add_(fast.data, alpha=1.0 - mm)
        losses.append(loss.item())
    return losses, online, target


@loop()
def canonical_correlation_of_two_views(data):
    """CCA-SSG, then logistic regression on frozen embeddings."""
    model, losses = Net(GCNConv, 16, out=8), []
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(3):
        zs = []
        for _ in range(2):
            x = data.x.clone()
            x[:, torch.rand(x.shape[1]) < 0.2] = 0
            h = model(x, data.edge_index)
            zs.append((h - h.mean(0)) / h.std(0))
        z1, z2 = zs
        c, c1, c2 = z1.T @ z2 / data.num_nodes, z1.T @ z1 / data.num_nodes, z2.T @ z2 / data.num_nodes
        iden = torch.eye(c.shape[0])
        loss = -torch.diagonal(c).sum() + 1e-3 * ((iden - c1).pow(2).sum() + (iden - c2).pow(2).sum())
        losses.append(descend(optimizer, loss))
    embeds = model(data.x, data.edge_index).detach()
    probe = nn.Linear(8, 4)
    opt = torch.optim.Adam(probe.parameters(), lr=1e-2, weight_decay=1e-4)
    train_embs, train_labels = embeds[data.train_mask], data.y[data.train_mask]
    for _ in range(5):
        loss = F.cross_entropy(probe(train_embs), train_labels)
        losses.append(descend(opt, loss))
    return losses, accuracy(probe(embeds), data.y, data.test_mask), probe


@loop(ids=True)
def links_with_new_negatives_each_epoch(data, ids):
    model, predictor, losses = Net(SAGEConv, 16, out=16), MLP2(16, 8, 1), []
    optimizer = torch.optim.Adam(list(model.parameters()) + list(predictor.parameters()), lr=0.01)
    order = torch.randperm(ids.pos.size(1))
    train, test = ids.pos[:, order[:30]], ids.pos[:, order[30:]]
    for _ in range(3):
        for perm in torch.utils.data.DataLoader(range(train.size(1)), 10, shuffle=True):
            optimizer.zero_grad()
            h = model(data.x, data.edge_index)
            edge, neg = train[:, perm], torch.randint(0, data.num_nodes, (2, len(perm)))
            pos_out = torch.sigmoid(predictor(h[edge[0]] * h[edge[1]]))
            neg_out = torch.sigmoid(predictor(h[neg[0]] * h[neg[1]]))
            loss = -torch.log(pos_out + 1e-15).mean() - torch.log(1 - neg_out + 1e-15).mean()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            nn.utils.clip_grad_norm_(predictor.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item() * len(perm))
    with torch.no_grad():
        h = model(data.x, data.edge_index)
        pos = predictor(h[test[0]] * h[test[1]]).squeeze()
        neg = predictor(h[ids.neg[0]] * h[ids.neg[1]]).squeeze()
        hits = (pos > torch.sort(neg, descending=True)[0][4]).sum().item() / len(pos)
        mrr = (1 / (1 + (neg.view(1, -1) >= pos.view(-1, 1)).sum(1))).mean()
    return losses, hits, mrr, model


@loop(ids=True, random=True)
def adversarial_autoencoder_with_two_optimisers(data, ids):
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.mu, self.logstd = GCNConv(8, 16), GCNConv(16, 8), GCNConv(16, 8)

        def forward(self, x, edge_index):
            x = self.conv1(x, edge_index).relu()
            return self.mu(x, edge_index), self.logstd(x, edge_index)

    model = ARGVA(Encoder(), nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)))
    encoder_optimizer = torch.optim.Adam(model.encoder.parameters(), lr=0.005)
    discriminator_optimizer, losses = torch.optim.Adam(model.discriminator.parameters(), lr=0.001), []
    for _ in range(3):
        encoder_optimizer.zero_grad()
        z = model.encode(data.x, data.edge_index)
        for _ in range(2):
            discriminator_optimizer.zero_grad()
            discriminator_loss = model.discriminator_loss(z)
            discriminator_loss.backward()
            discriminator_optimizer.step()
        loss = model.recon_loss(z, ids.pos, ids.neg) + model.reg_loss(z) + (1 / data.num_nodes) * model.kl_loss()
        loss.backward()
        encoder_optimizer.step()
        losses += [discriminator_loss.item(), loss.item()]
    return losses, model


@loop()
def masked_autoencoder_with_a_token(data):
    """GraphMAE: rows replaced by a learned token, a scaled cosine error."""
    encoder, decoder, token = Net(GATConv, 16, out=16), GCNConv(16, 8), nn.Parameter(torch.zeros(1, 8))
    optimizer = torch.optim.Adam([token, *encoder.parameters(), *decoder.parameters()], lr=1e-2, weight_decay=2e-4)
    losses = []
    for _ in range(4):
        perm = torch.randperm(data.num_nodes)
        mask_nodes = perm[: int(0.5 * data.num_nodes)]
        noise_nodes = mask_nodes[torch.randperm(len(mask_nodes))[:4]]
        x = data.x.clone()
        x[mask_nodes] = 0.0
        x[mask_nodes] += token
        x[noise_nodes] = data.x[perm[-4:]]
        rep = encoder(x, data.edge_index)
        rep[mask_nodes] = 0
        recon = decoder(rep, data.edge_index)
        one, two = F.normalize(recon[mask_nodes], dim=-1), F.normalize(data.x[mask_nodes], dim=-1)
        loss = (1 - (one * two).sum(dim=-1)).pow(2).mean()
        losses.append(descend(optimizer, loss))
    return losses, encoder, token
