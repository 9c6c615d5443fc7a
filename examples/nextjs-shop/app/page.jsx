import { randomUUID } from "node:crypto";
import { buy } from "./buy.js";

// Each visit gets an id of its own, so the page is never prerendered.
export const dynamic = "force-dynamic";

export default function ProductPage() {
  return (
    <form action={buy}>
      <h1>One kilogram of coffee</h1>
      {/* The form carries the id of the order, so that a double click makes one order and one payment. */}
      <input type="hidden" name="order" value={randomUUID()} />
      <button type="submit">Buy for $12.50</button>
    </form>
  );
}
