import { describe, expect, test } from "vitest";
import { decideAdmission } from "../../../../payments/lifecycle/admit-attempt.ts";

const now = new Date("2030-01-01T12:00:00Z");
type Kept = Parameters<typeof decideAdmission>[0][number];

/** Returns `count` attempts, oldest first; the last one is `secondsOld` seconds old. */
const kept = (optionId: string, state: Kept["state"], count: number, secondsOld = 5): Kept[] =>
  Array.from({ length: count }, (_, index) => ({
    id: `${optionId}-${state}-${index}`,
    option_id: optionId,
    state,
    created_at: new Date(now.getTime() - secondsOld * 1_000 - (count - index)),
  }));
const decide = (some: Kept[], optionId = "own") => decideAdmission(some, { optionId, now });

describe("a confirm without a proof by the payer's key", () => {
  test("a confirm without a proof by the payer's key is stored while the payment is below its limits", () => {
    expect(decide([])).toEqual({ admit: true, evict: [] });
    expect(decide(kept("own", "refused", 9))).toEqual({ admit: true, evict: [] });
    expect(decide(kept("own", "waiting", 2))).toEqual({ admit: true, evict: [] });
  });

  test("a confirm without a proof by the payer's key has to be retried later while other attempts of its option, or many of its payment, are waiting", () => {
    const later = { admit: false, retryAfterSeconds: 2 };
    expect(decide(kept("own", "waiting", 3))).toEqual(later);
    expect(decide([..."abcdefghij"].flatMap((option) => kept(option, "waiting", 2)))).toEqual(later);
  });

  test("replaces the oldest refused attempt of its option once that attempt is a minute old", () => {
    expect(decide(kept("own", "refused", 10, 45))).toEqual({ admit: false, retryAfterSeconds: 15 });
    expect(decide(kept("own", "refused", 10, 60))).toEqual({ admit: true, evict: ["own-refused-0"] });
  });

  test("a confirm without a proof by the payer's key is stored as the first attempt of its option even when other options have refused attempts", () => {
    const others = [..."abc"].flatMap((option) => kept(option, "refused", 10));
    expect(decide(others)).toEqual({ admit: true, evict: ["a-refused-0"] });
    expect(decide([...others, ...kept("own", "refused", 1)])).toMatchObject({ admit: false });
  });
});
