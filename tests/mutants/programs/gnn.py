"""A graph convolutional network for the classes of nodes, trained on the whole graph."""

import torch
import torch.nn.functional as F
from torch import nn


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        support = torch.mm(x, self.weight)
        output = torch.spmm(adj, support)
        return output + self.bias


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        x = self.gc2(x, adj)
        return F.log_softmax(x, dim=1)


def normalize(adj):
    degree = adj.sum(1).pow(-0.5)
    return degree.unsqueeze(1) * adj * degree.unsqueeze(0)


def load_data(nodes=60, classes=3):
    labels = torch.arange(nodes) % classes
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    edges = torch.rand(nodes, nodes) < torch.where(same, 0.2, 0.02)
    adj = (edges | edges.T | torch.eye(nodes, dtype=torch.bool)).float()
    features = F.one_hot(labels, 8).float() + torch.randn(nodes, 8)
    order = torch.randperm(nodes)
    return normalize(adj).to_sparse(), features, labels, order[:30], order[30:]


def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    return preds.eq(labels).double().mean()


torch.manual_seed(42)
adj, features, labels, idx_train, idx_val = load_data()
model = GCN(nfeat=8, nhid=16, nclass=3, dropout=0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)


def train(epoch):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    acc_train = accuracy(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()

    model.eval()
    with torch.no_grad():
        output = model(features, adj)
        loss_val = F.nll_loss(output[idx_val], labels[idx_val])
        acc_val = accuracy(output[idx_val], labels[idx_val])
    if epoch % 10 == 0:
        print(f"Epoch {epoch:02d} loss_train {loss_train.item():.4f} acc_train {acc_train.item():.3f}")
        print(f"         loss_val {loss_val.item():.4f} acc_val {acc_val.item():.3f}")


for epoch in range(40):
    train(epoch)
