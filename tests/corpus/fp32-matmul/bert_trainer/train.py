#> device kind=cuda capability=(9,0) bf16=true; flags allow_tf32=false
from argparse import ArgumentParser
from steps import Trainer

def main():
    parser = ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    options = parser.parse_args()
    trainer = Trainer(options)
    for epoch in range(options.epochs):
        trainer.epoch()

if __name__ == "__main__":
    main()
