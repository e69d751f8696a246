"""An encoder and an attending decoder that reverse a sequence, each with its own optimizer."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

SOS, VOCAB, LENGTH = 0, 12, 5
teacher_forcing_ratio = 0.5


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.1):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input):
        embedded = self.dropout(self.embedding(input))
        output, hidden = self.gru(embedded)
        return output, hidden


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)

    def forward_step(self, token, hidden, encoder_outputs):
        embedded = self.embedding(token)
        query = self.Wa(hidden.permute(1, 0, 2))
        scores = torch.bmm(query, encoder_outputs.transpose(1, 2))
        weights = F.softmax(scores, dim=-1)
        context = torch.bmm(weights, encoder_outputs)
        output, hidden = self.gru(torch.cat((embedded, context), dim=2), hidden)
        return self.out(output), hidden

    def forward(self, encoder_outputs, hidden, target=None):
        token = torch.full((encoder_outputs.size(0), 1), SOS)
        outputs = []
        for i in range(LENGTH):
            output, hidden = self.forward_step(token, hidden, encoder_outputs)
            outputs.append(output)
            if target is not None:
                token = target[:, i].unsqueeze(1)
            else:
                _, topi = output.topk(1)
                token = topi.squeeze(-1).detach()
        return torch.cat(outputs, dim=1)


def pairs(count=16):
    source = torch.randint(1, VOCAB, (count, LENGTH))
    return source, source.flip(1)


def train_step(source, target, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion):
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    encoder_outputs, encoder_hidden = encoder(source)
    forced = target if random.random() < teacher_forcing_ratio else None
    decoder_outputs = decoder(encoder_outputs, encoder_hidden, forced)
    loss = criterion(decoder_outputs.view(-1, VOCAB), target.reshape(-1))
    loss.backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
    return loss.item()


def evaluate(encoder, decoder):
    encoder.eval()
    decoder.eval()
    right = 0.0
    with torch.no_grad():
        for _ in range(5):
            source, target = pairs()
            outputs, hidden = encoder(source)
            right += (decoder(outputs, hidden).argmax(-1) == target).float().mean().item()
    encoder.train()
    decoder.train()
    return right / 5


def train_iters(encoder, decoder, iters=30, print_every=10):
    encoder_optimizer = optim.Adam(encoder.parameters(), lr=0.005)
    decoder_optimizer = optim.Adam(decoder.parameters(), lr=0.005)
    criterion = nn.CrossEntropyLoss()
    print_loss = 0
    for it in range(1, iters + 1):
        source, target = pairs()
        print_loss += train_step(source, target, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion)
        if it % print_every == 0:
            print(f"({it}) {print_loss / print_every:.4f} accuracy {evaluate(encoder, decoder):.3f}")
            print_loss = 0


random.seed(1)
torch.manual_seed(1)
train_iters(EncoderRNN(VOCAB, 16), AttnDecoderRNN(16, VOCAB))
