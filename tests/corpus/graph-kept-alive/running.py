#> memory growth_bytes_per_step=8388608
class Trainer:
    def fit(self):
        self.running = 0
        for batch in self.batches:
            loss = self.model(batch)  #> cost device_ms=25 kept_bytes=8388608
            loss.backward()
            self.optimizer.step()
            self.running += loss  #> found
        return self.running / len(self.batches)
