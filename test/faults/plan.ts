import type { Random } from "./random.ts";

/**
 * What happens around a payment. `stranger`: somebody else relays its authorization as well. `blocked`, `spent`: the
 * payer is put on the token's block list, or spends the money elsewhere, while it is being paid; for a while, or for
 * good. `late`: confirmed in the moment of its deadline. `test`: with a test key.
 */
export type Kind = "plain" | "stranger" | "blocked" | "blocked for good" | "spent" | "spent for good" | "late" | "test";

/** How a payment of a kind may end; an honest one has only one end. */
export const endsOf: Readonly<Record<Kind, readonly string[]>> = {
  plain: ["succeeded"],
  stranger: ["succeeded"],
  blocked: ["succeeded", "cancelled"],
  "blocked for good": ["succeeded", "cancelled", "expired"],
  spent: ["succeeded", "cancelled"],
  "spent for good": ["succeeded", "cancelled", "expired"],
  late: ["succeeded", "expired"],
  test: ["succeeded"],
};

/** Shares of a run, in hundredths; what is left is plain. */
const shares: Partial<Record<Kind, number>> = {
  ...{ stranger: 12, blocked: 4, "blocked for good": 2, spent: 4, "spent for good": 2, late: 4, test: 4 },
};

export type Plan = {
  index: number;
  kind: Kind;
  /** When the merchant asks for it, milliseconds after the beginning. */
  at: number;
  cents: number;
  /** Seconds until its deadline. */
  lives: number;
  /** The merchant's server sends its creation again, and once with another body under the same key. */
  repeatsCreation: boolean;
  /** The wallet sends its confirm twice at the same time. */
  confirmsTwice: boolean;
};

/** So many payments, spread evenly, every kind among them. */
export function planPayments(random: Random, args: { payments: number; everyMs: number }): Plan[] {
  const kinds = Object.entries(shares).flatMap(([kind, share]) =>
    Array<Kind>(Math.max(1, Math.round((args.payments * share) / 100))).fill(kind as Kind),
  );
  const plain = Array<Kind>(Math.max(0, args.payments - kinds.length)).fill("plain");
  return random.shuffle([...kinds, ...plain].slice(0, args.payments)).map((kind, index) => ({
    index,
    kind,
    at: index * args.everyMs + random.between(0, args.everyMs),
    cents: random.between(1, 5_000),
    lives: kind === "late" ? random.between(3, 6) : 600,
    repeatsCreation: random.chance(0.2),
    confirmsTwice: random.chance(0.2),
  }));
}
