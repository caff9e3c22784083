"""Mean and standard deviation at many points, as in gpytorch's issue 2736."""

import gpytorch
import torch

import perfci


class Model(gpytorch.models.ExactGP):
    """The model of gpytorch's first tutorial."""

    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


@perfci.benchmark
def predict():
    x = torch.linspace(0, 1, 100)
    y = torch.sin(x * 6.28) + torch.randn(100) * 0.2
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(x, y, likelihood)
    model.eval()
    likelihood.eval()
    points = torch.linspace(0, 1, 2048)

    def call():
        with torch.no_grad():
            predicted = likelihood(model(points))
            return predicted.mean, predicted.stddev

    return call
