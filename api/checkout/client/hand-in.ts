import type { News } from "../script-data.ts";
import { Refused } from "./page.ts";
import type { Result } from "./sent.ts";
import { ask } from "./told.ts";

/** The transaction that was handed in is in a block and has moved nothing. */
export class Reverted extends Error {}

/**
 * The same confirm again is the same confirm: a lost answer costs a second, and never a second payment. It is held until
 * the confirm is verified; asked again when that takes longer, for as long as the payment waits for this attempt.
 */
export async function handIn(
  confirm: { optionId: string; results: Result[] },
  { isMine, onOpen }: { isMine: () => boolean; onOpen?: () => void },
): Promise<News> {
  for (let failures = 0, open = false; ; ) {
    try {
      const news = await ask<News & { reverted?: true }>("/confirm", { json: confirm });
      if (news.reverted) throw new Reverted();
      if (news.status !== "requires_action" || !isMine()) return news;
      if (!open) onOpen?.();
      open = true;
    } catch (error) {
      failures += 1;
      if (error instanceof Reverted || !isPassing(error) || failures === 30) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

/** Nobody has said no: a network or a server that is away, or busy. */
export const isPassing = (error: unknown): boolean =>
  !(error instanceof Refused) || error.status === 429 || error.status >= 500;
