import { setTimeout as pause } from "node:timers/promises";
import type { Fault } from "./fault-scheduler.ts";
import type { Random } from "./seeded-random.ts";
import { finalityDepthSlots, type SolanaEnvironment } from "./solana-environment.ts";

/** The number of blocks for which a blockhash is valid. */
const lifetime = 150;

/** The faults of the cluster itself. */
export function solanaFaults({ solana: { knobs } }: SolanaEnvironment, random: Random): Fault[] {
  /** Applies a setting for a while. */
  const applyForAWhile = async (on: () => Promise<void>, off: () => Promise<void>, longestMs: number) => {
    await on();
    await pause(random.between(Math.ceil(longestMs / 4), longestMs));
    await off();
  };
  const drop = () =>
    applyForAWhile(
      () => knobs.drop("all"),
      () => knobs.drop(0),
      4_000,
    );
  const hold = () =>
    applyForAWhile(
      () => knobs.hold(random.between(3, 60)),
      () => knobs.hold(0),
      4_000,
    );
  const pauseSlots = () => applyForAWhile(knobs.pause, knobs.resume, 3_000);
  const delayResponses = () =>
    applyForAWhile(
      () => knobs.delay(["*"], random.between(300, 1_500)),
      () => knobs.delay(["*"], 0),
      3_000,
    );
  const rollback = {
    name: "slots are rolled back",
    run: () => knobs.rollback(random.between(1, finalityDepthSlots - 1)),
  };
  return [
    rollback,
    rollback,
    { name: "sent transactions are dropped", run: drop },
    { name: "sent transactions land late", run: hold },
    { name: "blockhashes expire", run: () => knobs.jump(lifetime + 1) },
    { name: "no slots are produced", run: pauseSlots },
    { name: "every response is late", run: delayResponses },
  ];
}
