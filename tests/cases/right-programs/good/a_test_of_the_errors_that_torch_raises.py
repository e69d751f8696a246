import unittest

import torch

torch.manual_seed(0)

class Errors(unittest.TestCase):
    def setUp(self):
        self.x = torch.randn(3, requires_grad=True)

    def test_a_graph_is_freed(self):
        loss = self.x.pow(2).sum()
        loss.backward()
        with self.assertRaises(RuntimeError):
            loss.backward()

    def test_no_graph(self):
        with torch.no_grad():
            loss = self.x.pow(2).sum()
        with self.assertRaisesRegex(RuntimeError, "does not require grad"):
            loss.backward()

    def test_overwritten(self):
        y = self.x.exp()
        loss = y.sum()
        y.mul_(2)
        with self.assertRaises(RuntimeError) as caught:
            for _ in range(1):
                loss.backward()

unittest.main(argv=["tests"], exit=False)
