"""Alternating least squares on sparse ratings; no gradient anywhere."""

import torch

USERS, FILMS, RANK, RIDGE = 3000, 1200, 64, 0.1


def ratings(generator, each=50):
    n = USERS * each
    user = torch.arange(USERS).repeat_interleave(each)
    film = torch.randint(FILMS, (n,), generator=generator)
    u = torch.randn(USERS, 6, generator=generator)
    v = torch.randn(FILMS, 6, generator=generator)
    value = (u[user] * v[film]).sum(1) + 0.3 * torch.randn(n, generator=generator)
    return user, film, value


def by_row(rows, cols, values, n):
    order = torch.argsort(rows, stable=True)
    count = torch.bincount(rows, minlength=n)
    return torch.sparse_csr_tensor(
        torch.cat((torch.zeros(1, dtype=torch.long), count.cumsum(0))), cols[order], values[order]
    ), count


def solve_chunk(matrix, start, stop, other):
    """Normal equations of the rows start..stop, solved together."""
    begin, end = matrix.crow_indices()[start].item(), matrix.crow_indices()[stop].item()
    length = matrix.crow_indices()[start + 1 : stop + 1] - matrix.crow_indices()[start:stop]
    local = torch.arange(stop - start).repeat_interleave(length)
    place = torch.arange(end - begin) - (length.cumsum(0) - length)[local]
    width = int(length.max())
    factors = torch.zeros(stop - start, width, RANK)
    target = torch.zeros(stop - start, width, 1)
    factors[local, place] = other[matrix.col_indices()[begin:end]]
    target[local, place, 0] = matrix.values()[begin:end]
    gram = factors.mT @ factors
    gram.diagonal(dim1=1, dim2=2).add_(RIDGE * length[:, None])
    right = factors.mT @ target
    return torch.cholesky_solve(right, torch.linalg.cholesky(gram)).squeeze(2)


@torch.inference_mode()
def main():
    generator = torch.Generator().manual_seed(0)
    user, film, value = ratings(generator)
    of_user, _ = by_row(user, film, value, USERS)
    of_film, _ = by_row(film, user, value, FILMS)
    x = torch.randn(USERS, RANK, generator=generator) * 0.1
    y = torch.randn(FILMS, RANK, generator=generator) * 0.1
    for sweep in range(20):
        for start in range(0, USERS, 300):
            x[start : start + 300] = solve_chunk(of_user, start, start + 300, y)
        for start in range(0, FILMS, 120):
            y[start : start + 120] = solve_chunk(of_film, start, start + 120, x)
        error = ((x[user] * y[film]).sum(1) - value).square().mean().sqrt()
        print(f"sweep {sweep} rmse {error.item():.4f}")


if __name__ == "__main__":
    main()
