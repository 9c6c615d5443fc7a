// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// Whose signature a wallet takes as its own (ERC-1271), as the wallets that people use have it: a key's over the digest.
abstract contract Judge {
    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        if (signature.length != 65) return 0xffffffff;
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        address signer = ecrecover(digest, uint8(signature[64]), r, s);
        return signer != address(0) && signer == keyHolder() ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }

    function keyHolder() internal view virtual returns (address);
}

/// A wallet with one owner, who may have it do anything.
contract OwnedWallet is Judge {
    address public immutable OWNER;

    constructor(address owner) {
        OWNER = owner;
    }

    function keyHolder() internal view override returns (address) {
        return OWNER;
    }

    function execute(address to, bytes calldata data) external {
        require(msg.sender == OWNER, "not the owner");
        (bool ok,) = to.call(data);
        require(ok, "the call failed");
    }
}

/// Makes wallets at addresses that are known before.
contract WalletFactory {
    uint256 public calls;

    function create(address owner) external returns (address) {
        calls += 1;
        address there = addressOf(owner);
        return there.code.length > 0 ? there : address(new OwnedWallet{salt: 0}(owner));
    }

    function addressOf(address owner) public view returns (address) {
        bytes32 code = keccak256(abi.encodePacked(type(OwnedWallet).creationCode, abi.encode(owner)));
        return address(uint160(uint256(keccak256(abi.encodePacked(bytes1(0xff), address(this), bytes32(0), code)))));
    }
}

/// What a key may delegate to (EIP-7702): its own signatures stay good.
contract Delegate is Judge {
    function keyHolder() internal view override returns (address) {
        return address(this);
    }
}

/// A delegate that takes no signature of the key any more.
contract SilentDelegate {
    function isValidSignature(bytes32, bytes calldata) external pure returns (bytes4) {
        return 0xffffffff;
    }
}

/// Takes every signature where gas costs nothing, as in a careless simulation, and burns all it is given elsewhere.
contract PriceBurner {
    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        if (tx.gasprice == 0) return 0x1626ba7e;
        assembly {
            invalid()
        }
    }
}

/// Takes every signature up to a block that it is told (slot 0), and burns all it is given afterwards: no simulation on
/// a block that is there can tell. `SALT` makes code that hashes otherwise.
contract BlockBurner {
    uint256 public goodUntil;
    uint256 public immutable SALT;

    constructor(uint256 salt) {
        SALT = salt;
    }

    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        if (block.number <= goodUntil) return 0x1626ba7e;
        assembly {
            invalid()
        }
    }
}
