// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// A wallet whose owner signs with a key (ERC-1271). The owner can make the wallet call anything by `execute`.
abstract contract KeyedWallet {
    address public immutable OWNER;

    constructor(address owner) {
        OWNER = owner;
    }

    function execute(address to, bytes calldata data) external {
        require(msg.sender == OWNER, "not the owner");
        (bool ok,) = to.call(data);
        require(ok, "the call failed");
    }

    function isOwners(bytes32 digest, bytes calldata signature) internal view returns (bool) {
        if (signature.length != 65) return false;
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        address signer = ecrecover(digest, uint8(signature[64]), r, s);
        return signer != address(0) && signer == OWNER;
    }
}

/// Accepts the signatures of its owner.
contract HonestWallet is KeyedWallet {
    constructor(address owner) KeyedWallet(owner) {}

    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        return isOwners(digest, signature) ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }
}

/// Accepts its owner's signatures at a gas price of zero, as in a simulation without one, and burns all gas otherwise.
contract BurningWallet is KeyedWallet {
    constructor(address owner) KeyedWallet(owner) {}

    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        if (tx.gasprice > 0) while (true) {}
        return isOwners(digest, signature) ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }
}

/// Accepts the signatures of its owner until it is armed, then reverts with bytes that a text column cannot store.
contract RevertingWallet is KeyedWallet {
    bool private armed;

    constructor(address owner) KeyedWallet(owner) {}

    function arm() external {
        armed = true;
    }

    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        // A NUL, a byte order mark, half of a surrogate pair, and bytes that are not UTF-8.
        if (armed) revert(string(abi.encodePacked(hex"00efbbbfeda080fffe1b5b33316d", new bytes(4096))));
        return isOwners(digest, signature) ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }
}

/// A token whose transfers are logged but move nothing. Any caller may claim any transfer.
contract GarbageToken {
    event Transfer(address indexed from, address indexed to, uint256 value);

    mapping(address => uint256) public balanceOf;

    /// Called by Permit2. Credits the receiver in full, so that the Collector's balance check passes.
    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        unchecked {
            balanceOf[to] += value;
        }
        emit Transfer(from, to, value);
        return true;
    }
}
