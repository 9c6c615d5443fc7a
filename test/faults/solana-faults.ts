import { setTimeout as pause } from "node:timers/promises";
import type { Fault } from "./nemesis.ts";
import type { Random } from "./random.ts";
import { finalAfter, type SolanaStage } from "./solana-stage.ts";

/** A blockhash is good for so many blocks. */
const lifetime = 150;

/** What can be wrong with the cluster itself. */
export function solanaFaults({ solana: { knobs } }: SolanaStage, random: Random): Fault[] {
  /** Turns a knob for a while. */
  const turn = async (on: () => Promise<void>, off: () => Promise<void>, longestMs: number) => {
    await on();
    await pause(random.between(Math.ceil(longestMs / 4), longestMs));
    await off();
  };
  const drop = () =>
    turn(
      () => knobs.drop("all"),
      () => knobs.drop(0),
      4_000,
    );
  const hold = () =>
    turn(
      () => knobs.hold(random.between(3, 60)),
      () => knobs.hold(0),
      4_000,
    );
  const standStill = () => turn(knobs.pause, knobs.resume, 3_000);
  const beSlow = () =>
    turn(
      () => knobs.delay(["*"], random.between(300, 1_500)),
      () => knobs.delay(["*"], 0),
      3_000,
    );
  const rollback = { name: "slots are undone", run: () => knobs.rollback(random.between(1, finalAfter - 1)) };
  return [
    rollback,
    rollback,
    { name: "sends are forgotten", run: drop },
    { name: "what is sent lands late", run: hold },
    { name: "blockhashes die", run: () => knobs.jump(lifetime + 1) },
    { name: "no slots are made", run: standStill },
    { name: "every answer comes late", run: beSlow },
  ];
}
