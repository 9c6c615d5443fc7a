import { notFound } from "next/navigation";
import { findOrder } from "../../orders.js";

// Buyers return here, often before the webhook. Only the webhook says that an order is paid: anyone can open this page.
export default async function OrderPage({ params }) {
  const { id } = await params;
  const { state } = findOrder(id) ?? {};
  if (!state) notFound();
  return (
    <>
      <h1>Your order is {state}</h1>
      {state === "open" ? <meta httpEquiv="refresh" content="1" /> : <a href="/">Buy another one</a>}
    </>
  );
}
