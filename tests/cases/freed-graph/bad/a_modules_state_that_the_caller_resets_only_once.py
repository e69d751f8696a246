import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.tag = nn.Embedding(9, 4), nn.LSTM(4, 6), nn.Linear(6, 3)
        self.hidden = self.init_hidden()

    def init_hidden(self):
        return torch.zeros(1, 1, 6), torch.zeros(1, 1, 6)

    def forward(self, sentence):
        embeds = self.embed(sentence)
        lstm_out, self.hidden = self.lstm(embeds.view(len(sentence), 1, -1), self.hidden)  # <- freed-graph
        return F.log_softmax(self.tag(lstm_out.view(len(sentence), -1)), dim=1)

model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.hidden = model.init_hidden()
for epoch in range(2):
    model.zero_grad()
    loss = F.nll_loss(model(torch.randint(0, 9, (5,))), torch.randint(0, 3, (5,)))
    loss.backward()
    optimizer.step()
